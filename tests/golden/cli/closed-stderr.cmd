drdotnet-trace report no-such.nettrace 2>&-
