# the list grows with the analyzers
drdotnet-trace report fixtures/synthetic-v4.nettrace cpu gpu 2> said
echo "exit $?"
sed 's/: summary, cpu, gc, .*/: summary, cpu, gc, .../' said
