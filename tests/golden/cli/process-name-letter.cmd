drdotnet-trace process dump -p 1 -o core.%e
