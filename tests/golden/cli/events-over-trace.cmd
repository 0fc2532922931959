# Events are never written over the trace they come from.
cp fixtures/synthetic-v4.nettrace t.nettrace
drdotnet-trace events t.nettrace -o ./t.nettrace --force
echo "exit $?"
ln -s t.nettrace link
drdotnet-trace events t.nettrace --count -o link --force
echo "exit $?"
cmp t.nettrace fixtures/synthetic-v4.nettrace && echo untouched
