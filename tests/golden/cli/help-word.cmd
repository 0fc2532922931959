drdotnet-trace help ps
