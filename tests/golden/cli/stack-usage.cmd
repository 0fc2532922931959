drdotnet-trace stack 4711
drdotnet-trace stack -p 1 -n shop
drdotnet-trace stack -p 0
drdotnet-trace stack -p 2147483646
