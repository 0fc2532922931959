drdotnet-trace process
drdotnet-trace process inf -p 1
drdotnet-trace process info
drdotnet-trace process info more -p 1
drdotnet-trace process info -p 1 -n x
drdotnet-trace process info -p 1 --type full
drdotnet-trace process dump -p 1 --set A=B
drdotnet-trace process perfmap -p 1
drdotnet-trace process perfmap maybe -p 1
drdotnet-trace process perfmap off --map all -p 1
drdotnet-trace process resume -p 1 --map all
drdotnet-trace process env -p 1 --set A
drdotnet-trace process env -p 1 --set =B
drdotnet-trace process dump -p 1 --type huge
drdotnet-trace process info -p 1 --timeout 5
drdotnet-trace process info --diagnostic-port /nonexistent/socket
echo $?
drdotnet-trace doctor 1
drdotnet-trace analyzers cpu
