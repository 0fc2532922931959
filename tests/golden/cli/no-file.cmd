drdotnet-trace report
