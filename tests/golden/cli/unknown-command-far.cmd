drdotnet-trace xyzzy
