drdotnet-trace collect --
