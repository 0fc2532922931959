drdotnet-trace collect --children
