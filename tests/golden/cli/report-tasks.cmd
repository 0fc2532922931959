drdotnet-trace report fixtures/stuck-net10.nettrace.zst tasks
