drdotnet-trace report -
