drdotnet-trace report --top 3 fixtures/starve-net8.nettrace.zst threadpool locks
