drdotnet-trace events a b
