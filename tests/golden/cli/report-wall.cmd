drdotnet-trace report --top 5 --view wall fixtures/deadlock-net10.nettrace.zst cpu
