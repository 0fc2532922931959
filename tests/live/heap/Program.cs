// SPDX-License-Identifier: MIT
// heap MODE N SECONDS: heaps of a known shape, for walks.  Prints "ready" when they stand.
using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading;
using System.Threading.Channels;
using System.Threading.Tasks;

public class Node { public Node Next; public Leaf Leaf; public int Id; }
public class Leaf { public Node Owner; public long Value; }

public static class Program
{
    static readonly List<object> kept = new();

    public static int Main(string[] args)
    {
        int n = int.Parse(args[1]);

        switch (args[0])
        {
            case "objects": Objects.Make(n, kept); break;
            case "tasks": Waits.Many(n, kept); break;
            case "deep": kept.Add(Waits.Deep(n)); break;
            case "shapes": Waits.Shapes(n, kept); break;
            case "busy": Waits.Busy(n, kept); break;
            default: return 2;
        }
        Console.WriteLine("ready");
        Thread.Sleep(TimeSpan.FromSeconds(double.Parse(args[2])));
        GC.KeepAlive(kept);
        return 0;
    }
}

// n objects in one list: half are nodes with three references, half leaves with one.
public static class Objects
{
    public static void Make(int n, List<object> kept)
    {
        Node head = null;

        for (int i = 0; i < n / 2; i++)
        {
            head = new Node { Next = head, Leaf = new Leaf { Value = i }, Id = i };
            head.Leaf.Owner = head;
        }
        kept.Add(head);
    }
}

public static class Waits
{
    static readonly TaskCompletionSource<int> never = new();
    static readonly SemaphoreSlim gate = new(0);

    static async Task<int> LeafAsync() => await never.Task;
    static async Task<int> CallerAsync() => await LeafAsync() + 1;
    static async Task<int> DeepAsync(int n) => n == 0 ? await never.Task : await DeepAsync(n - 1) + 1;
    static async ValueTask<int> ValueAsync() => await never.Task;

    public static void Many(int n, List<object> kept)
    {
        for (int i = 0; i < n / 2; i++)
            kept.Add(CallerAsync());
    }

    // Each level takes a frame of the stack while the chain is built.
    public static Task<int> Deep(int n)
    {
        Task<int> t = null;
        var thread = new Thread(() => t = DeepAsync(n), 512 << 20);

        thread.Start();
        thread.Join();
        return t;
    }

    static async Task AllAsync() => await Task.WhenAll(Enumerable.Range(0, 3).Select(_ => CallerAsync()));
    static async Task AnyAsync() => await Task.WhenAny(CallerAsync(), CallerAsync(), CallerAsync());
    static async Task RunAsync() => await Task.Run(async () => await CallerAsync());
    static async Task ThenAsync() => await CallerAsync().ContinueWith(t => t.Result);
    static async Task LimitAsync() { await gate.WaitAsync(TimeSpan.FromHours(1)); }
    static async Task ReadAsync(ChannelReader<int> r) { await r.ReadAsync(); }
    static async Task MoreAsync(ChannelReader<int> r) { await r.WaitToReadAsync(); }
    static async Task SleepAsync() { await Task.Delay(TimeSpan.FromHours(1)); }
    static async Task OfValueAsync() { await ValueAsync(); }
    static async void Void() { await CallerAsync(); }
    static async IAsyncEnumerable<int> Items() { yield return await CallerAsync(); }
    static async Task EachAsync() { await foreach (int i in Items()) Console.WriteLine(i); }
    static async Task<int> WithTokenAsync(CancellationToken token) { int r = await never.Task; token.ThrowIfCancellationRequested(); return r; }
    static async Task HoldsAsync() { var t = CallerAsync(); await gate.WaitAsync(); await t; }
    static Task first, second;
    static async Task FirstAsync() { await Task.Yield(); while (second == null) await Task.Yield(); await second; }
    static async Task SecondAsync() { await Task.Yield(); while (first == null) await Task.Yield(); await first; }

    // n of each.
    public static void Shapes(int n, List<object> kept)
    {
        for (int i = 0; i < n; i++)
        {
            kept.Add(AllAsync());
            kept.Add(AnyAsync());
            kept.Add(RunAsync());
            kept.Add(ThenAsync());
            kept.Add(LimitAsync());
            kept.Add(ReadAsync(Channel.CreateUnbounded<int>().Reader));
            kept.Add(MoreAsync(Channel.CreateUnbounded<int>().Reader));
            kept.Add(SleepAsync());
            kept.Add(OfValueAsync());
            Void();
            kept.Add(EachAsync());
            kept.Add(WithTokenAsync(new CancellationTokenSource().Token));
            kept.Add(HoldsAsync());
        }
        first = FirstAsync();
        second = SecondAsync();
        kept.Add(first);
        kept.Add(second);
        Thread.Sleep(500);
    }

    // n at a time, each for a moment: the same shapes, never the same objects.
    static async Task ServeAsync() { var s = new TaskCompletionSource<int>(TaskCreationOptions.RunContinuationsAsynchronously); _ = Task.Delay(150).ContinueWith(_ => s.SetResult(1)); await s.Task; }
    static async Task LoopAsync() { while (true) await ServeAsync(); }

    public static void Busy(int n, List<object> kept)
    {
        for (int i = 0; i < n; i++)
            kept.Add(LoopAsync());
    }
}
