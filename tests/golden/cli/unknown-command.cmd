drdotnet-trace reprot x.nettrace
