printf '\037\213\010\000\000\000\000\000' > x.nettrace.gz
drdotnet-trace events x.nettrace.gz
