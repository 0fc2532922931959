drdotnet-trace report fixtures/contention-net10.nettrace.zst locks
