drdotnet-trace report --top 5 fixtures/cpu-net10.nettrace.zst summary cpu
