drdotnet-trace report no-such.nettrace
