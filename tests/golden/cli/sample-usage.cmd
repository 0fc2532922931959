drdotnet-trace sample
drdotnet-trace sample -p 0
drdotnet-trace sample -p abc
drdotnet-trace sample -p 99999999999
drdotnet-trace sample --all --count 3
drdotnet-trace sample --all --every 10s --jitter 10s
drdotnet-trace sample --all --prometheus metrics.txt
