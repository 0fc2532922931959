// SPDX-License-Identifier: MIT
// The smallest web service: it listens on a port of its own choice and waits.

var builder = WebApplication.CreateSlimBuilder(args);
builder.WebHost.UseUrls("http://127.0.0.1:0");
builder.Logging.ClearProviders();
var app = builder.Build();
app.MapGet("/", () => "hello");
await app.StartAsync();
await app.WaitForShutdownAsync();
