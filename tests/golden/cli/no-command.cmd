drdotnet-trace
