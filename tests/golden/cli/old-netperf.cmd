# what .NET Core 2.0 wrote
printf '\024\000\000\000!FastSerialization.1\004\004\001\002\000\000\000\000\000\000\000\046\000\000\000Microsoft.DotNet.Runtime.EventPipeFile\006' > x.netperf
head -c 100 /dev/zero >> x.netperf
drdotnet-trace report x.netperf
