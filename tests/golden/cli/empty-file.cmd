: > empty.nettrace
drdotnet-trace report empty.nettrace
