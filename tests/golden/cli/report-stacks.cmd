drdotnet-trace report fixtures/deadlock-net10.nettrace.zst stacks
