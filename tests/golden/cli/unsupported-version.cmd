# version 7 of the container
head -c 12 fixtures/synthetic-v6.nettrace > x.nettrace
printf '\007\000\000\000\000\000\000\000' >> x.nettrace
drdotnet-trace report x.nettrace
