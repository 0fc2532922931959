// SPDX-License-Identifier: MIT
// More events than anybody wants: Flood awaits|events SECONDS [WORKERS [PER_SECOND]]
using System;
using System.Diagnostics;
using System.Diagnostics.Tracing;
using System.Linq;
using System.Threading;
using System.Threading.Tasks;

var mode = args.Length > 0 ? args[0] : "events";
var seconds = args.Length > 1 ? double.Parse(args[1]) : 10;
var workers = args.Length > 2 ? int.Parse(args[2]) : 4;
var perSecond = args.Length > 3 ? double.Parse(args[3]) : 0; // of each worker; 0: as many as it can
var clock = Stopwatch.StartNew();
long done = 0;

// False when the time is over; waits where that many a second are enough.
bool Next(ref long n)
{
    n++;
    while (perSecond > 0 && n > clock.Elapsed.TotalSeconds * perSecond && clock.Elapsed.TotalSeconds < seconds)
        Thread.Sleep(1);
    return clock.Elapsed.TotalSeconds < seconds;
}

async Task Await()
{
    long n = 0;
    while (Next(ref n))
        await Task.Run(() => { });
    Interlocked.Add(ref done, n);
}

void Write(int worker)
{
    long n = 0;
    while (Next(ref n))
        FloodSource.Log.Drop(worker, n);
    Interlocked.Add(ref done, n);
}

Console.WriteLine($"pid {Environment.ProcessId}");
if (mode == "awaits")
    await Task.WhenAll(Enumerable.Range(0, workers).Select(_ => Task.Run(Await)));
else
{
    var threads = Enumerable.Range(0, workers).Select(i => new Thread(() => Write(i))).ToArray();
    foreach (var t in threads) t.Start();
    foreach (var t in threads) t.Join();
}
Console.WriteLine($"done {done}");

[EventSource(Name = "Flood")]
sealed class FloodSource : EventSource
{
    public static readonly FloodSource Log = new();
    [Event(1, Level = EventLevel.Informational)]
    public void Drop(int worker, long number) => WriteEvent(1, worker, number);
}
