drdotnet-trace report --top 5 fixtures/gc-net10.nettrace.zst gc
