// The output of real compilers, deployed and invoked: AssemblyScript, C and Rust.
import t from 'tap'
import { compileSource } from '#examples/functions/compile.ts'
import { compileCSource, compileRustSource } from '#examples/functions/compile-native.ts'
import { startRuntime } from '#test/support/runtime.ts'
import { readAll } from './support/assemblyscript.ts'
import { deploy, invoke } from './support/deployed.ts'

/**
 * One function in each language. It returns its name, a variable and its input, or fails for the inputs `fail` and
 * `trap`.
 */
const functions: Record<string, () => Promise<Uint8Array<ArrayBuffer>>> = {
  assemblyscript: () =>
    compileSource(`${readAll}
    const input = readAll()
    if (input == 'fail') { process.stderr.write('it fails on request\\n'); process.exit(7) }
    if (input == 'trap') unreachable()
    process.stdout.write('{"name":"' + process.argv[0] + '","colour":"' + process.env.get('COLOUR') + '","input":"' + input + '"}')
  `),
  c: () =>
    compileCSource(`
    #include <stdio.h>
    #include <stdlib.h>
    #include <string.h>
    int main(int count, char **values) {
      static char input[100000];
      input[fread(input, 1, sizeof input - 1, stdin)] = 0;
      if (!strcmp(input, "fail")) { fputs("it fails on request\\n", stderr); return 7; }
      if (!strcmp(input, "trap")) abort();
      printf("{\\"name\\":\\"%s\\",\\"colour\\":\\"%s\\",\\"input\\":\\"%s\\"}", values[0], getenv("COLOUR"), input);
      return 0;
    }
  `),
  rust: () =>
    compileRustSource(`
    use std::{collections::HashMap, env, io::{self, Read, Write}, process};
    fn main() {
      let mut input = String::new();
      io::stdin().read_to_string(&mut input).unwrap();
      if input == "fail" { eprintln!("it fails on request"); process::exit(7); }
      if input == "trap" { panic!("it panics on request"); }
      // Hash maps need random numbers. Threads and files are not available.
      let mut variables: HashMap<&str, String> = HashMap::new();
      variables.insert("colour", env::var("COLOUR").unwrap());
      assert!(std::thread::Builder::new().spawn(|| ()).is_err());
      assert!(std::fs::read("/etc/passwd").is_err());
      let name = env::args().next().unwrap();
      let colour = &variables["colour"];
      write!(io::stdout(), "{{\\"name\\":\\"{}\\",\\"colour\\":\\"{}\\",\\"input\\":\\"{}\\"}}", name, colour, input).unwrap();
    }
  `),
}

t.test('The output of each compiler is accepted, and does the same', { timeout: 600_000 }, async (t) => {
  const runtime = await startRuntime(t)
  const tenant = await runtime.addTenant()
  for (const [name, compile] of Object.entries(functions)) {
    const wasm = await compile()
    const deployed = await deploy(tenant, { name, wasm, config: { environment: { COLOUR: 'blue' } } })
    t.equal(deployed.status, 201, deployed.text)
    for (const input of ['', 'grün €', 'x'.repeat(50_000)]) {
      const response = await invoke(tenant, name, input)
      t.same(
        [response.status, response.json()],
        [200, { name, colour: 'blue', input }],
        `${name}: ${input.length} characters`,
      )
    }
    const failed = await invoke(tenant, name, 'fail')
    t.equal(failed.status, 500)
    t.match(failed.json(), { code: 'HOST_FUNCTION_ERROR', message: /exited with code 7: it fails on request/ }, name)
    t.match(
      (await invoke(tenant, name, 'trap')).json(),
      { code: 'HOST_FUNCTION_ERROR', message: /trapped: unreachable/ },
      name,
    )
    const records = await tenant.rows(
      `select status, count(*)::int as n from "${tenant.id}".function_invocations i
        join "${tenant.id}".functions f on f.id = function_id where f.name = $1 group by status order by status`,
      [name],
    )
    t.same(
      records,
      [
        { status: 'error', n: 2 },
        { status: 'success', n: 3 },
      ],
      name,
    )
  }
})
