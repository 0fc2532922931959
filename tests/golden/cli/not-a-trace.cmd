echo "this is no trace at all" > x.nettrace
drdotnet-trace report x.nettrace
