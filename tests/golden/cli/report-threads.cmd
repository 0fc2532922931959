drdotnet-trace report fixtures/zombie-net10.nettrace.zst threads threadpool
