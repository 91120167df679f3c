// Serves the benchmark's command with Deno: `deno run … deno-function.mjs MODULE PORT`.
import { respond } from './command-host.ts'

declare const Deno: {
  args: string[]
  readFile(path: string): Promise<Uint8Array>
  serve(
    options: { hostname: string; port: number; onListen(): void },
    handler: (request: Request) => Promise<Response>,
  ): void
}

const [file = '', port] = Deno.args
const module = new WebAssembly.Module(await Deno.readFile(file))
Deno.serve({ hostname: '127.0.0.1', port: Number(port), onListen: () => undefined }, (request) =>
  respond(module, request),
)
