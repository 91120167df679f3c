// The runtime shows no secret of a function, whichever channel the function writes it to: not in errors, records, logs or
// the runtime's own log.
import { join } from 'node:path'
import t from 'tap'
import { compileCSource } from '#examples/functions/compile-native.ts'
import { startRuntime, type ApiResponse } from '#test/support/runtime.ts'
import { deploy, invoke } from './support/deployed.ts'

const secrets = {
  SECRET: 'canary-of-the-environment-41c7',
  /** A secret of several lines, as keys are. */
  KEY: 'canary-key-first-line\ncanary-key-second-line\ncanary-key-last-line',
  COLOUR: 'Canary-In-Capitals-99',
}
const webhookSecret = 'canary-of-the-webhook-77aa'

/** Standard input states how to write the secret and, after a space, the name of its variable or the secret itself. */
const source = `
  #include <stdio.h>
  #include <unistd.h>
  #include "tenantry.h"

  int main(void) {
    static char input[1000], text[5000];
    input[fread(input, 1, sizeof input - 1, stdin)] = 0;
    char *given = strchr(input, ' ');
    *given++ = 0;
    const char *secret = getenv(given) ? getenv(given) : given;
    size_t length = strlen(secret), half = length / 2;
    if (!strcmp(input, "output")) { fputs(secret, stdout); return 3; }
    if (!strcmp(input, "error")) { fprintf(stderr, "it is %s.\\n", secret); return 3; }
    if (!strcmp(input, "success")) { fprintf(stderr, "it is %s.\\n", secret); puts("fine"); return 0; }
    if (!strcmp(input, "trap")) { fprintf(stderr, "it is %s", secret); abort(); }
    if (!strcmp(input, "exit")) { write(2, secret, length); _Exit(9); }
    if (!strcmp(input, "halves")) { write(2, secret, half); write(2, secret + half, length - half); return 3; }
    if (!strcmp(input, "bytes")) { for (size_t n = 0; n < length; n++) write(2, secret + n, 1); return 3; }
    if (!strcmp(input, "lines")) { write(2, secret, half); write(2, "\\n", 1); write(2, secret + half, length - half); return 3; }
    if (!strcmp(input, "log")) { for (int level = 0; level < 4; level++) tenantry_log(level, secret); return 3; }
    if (!strcmp(input, "levels")) {
      tenantry_import_log(TENANTRY_INFO, secret, half);
      tenantry_import_log(TENANTRY_WARN, secret + half, length - half);
      return 3;
    }
    if (!strcmp(input, "both")) { tenantry_import_log(TENANTRY_ERROR, secret, half); write(2, secret + half, length - half); return 3; }
    if (!strcmp(input, "often")) { for (int n = 0; n < 3000; n++) fprintf(stderr, "%s %d\\n", secret, n); return 3; }
    if (!strcmp(input, "late")) { for (int n = 0; n < 500; n++) fprintf(stderr, "%s %d\\n", secret, n); for (;;) {} }
    if (!strcmp(input, "header")) { printf("Status: 200\\n%s: x\\n\\n", secret); return 0; }
    if (!strcmp(input, "status")) { printf("Status: 999 %s\\n\\n", secret); return 0; }
    if (!strcmp(input, "query")) {
      snprintf(text, sizeof text, "select '%s' from nowhere", secret);
      fputs(tenantry_query(text, "").bytes, stderr);
      return 3;
    }
    if (!strcmp(input, "value")) {
      snprintf(text, sizeof text, "select ('%s')::integer", secret);
      fputs(tenantry_query(text, "").bytes, stderr);
      return 3;
    }
    if (!strcmp(input, "file")) {
      snprintf(text, sizeof text, "nowhere/%s", secret);
      int32_t got = tenantry_import_storage_get(text, strlen(text));
      fputs(tenantry_taken(got).bytes, stderr);
      return 3;
    }
    if (!strcmp(input, "fetch")) {
      snprintf(text, sizeof text, "{\\"url\\":\\"http://%s.example/%s\\"}", secret, secret);
      int32_t got = tenantry_import_http_fetch(text, strlen(text), "", 0);
      fputs(tenantry_taken(got).bytes, stderr);
      return 3;
    }
    return 98;
  }
`

const ways: Record<string, number> = {
  output: 500,
  error: 500,
  success: 200,
  trap: 500,
  exit: 500,
  halves: 500,
  bytes: 500,
  lines: 500,
  log: 500,
  levels: 500,
  both: 500,
  often: 500,
  late: 504,
  header: 500,
  status: 500,
  query: 500,
  value: 500,
  file: 500,
  fetch: 500,
}

t.test('The runtime shows no secret of a function, however the function writes it', { timeout: 300_000 }, async (t) => {
  const runtime = await startRuntime(t, { logLevel: 'trace' })
  const tenant = await runtime.addTenant()
  const wasm = await compileCSource(source, ['-I', join(import.meta.dirname, '..', '..', 'examples', 'functions')])
  const deployed = await deploy(tenant, {
    name: 'leaky',
    wasm,
    config: { timeout: 1, environment: secrets },
    trigger: { Webhook: { secret: webhookSecret } },
  })
  t.equal(deployed.status, 201, deployed.text)
  const shown: string[] = []
  const see = (what: string, { status, text, headers }: ApiResponse) =>
    shown.push(`${what}: ${status} ${JSON.stringify(headers)} ${text}`)
  for (const [way, expected] of Object.entries(ways)) {
    for (const what of [...Object.keys(secrets), webhookSecret]) {
      const response = await invoke(tenant, 'leaky', `${way} ${what}`)
      // A header's name cannot contain a key of several lines, so the status of this secret differs.
      if (what !== 'KEY') t.equal(response.status, expected, `${way}: ${response.text}`)
      see(way, response)
    }
  }
  // The runtime writes an invocation's record after its response.
  const ends = async () =>
    Number(
      (
        await tenant.rows(
          "select count(*)::int as n from function_invocations where error_message is distinct from 'interrupted'",
        )
      )[0]?.['n'],
    )
  t.equal(await ends(), 4 * Object.keys(ways).length)
  for (const path of ['logs?limit=1000', 'invocations?limit=100', 'usage']) {
    const response = await tenant.request('GET', `/functions/v1/leaky/${path}`, { as: 'service' })
    t.equal(response.status, 200, response.text)
    see(path, response)
  }
  for (const table of ['function_invocations', 'function_logs', 'event_log'])
    shown.push(JSON.stringify(await tenant.rows(`select * from ${table}`)))
  see('records', await tenant.request('GET', '/rest/v1/function_invocations?limit=1000', { as: 'service' }))
  t.ok(runtime.errors.length > 0, 'the runtime has written to its log')
  shown.push(...runtime.errors)

  const canaries = [secrets.SECRET, secrets.COLOUR, webhookSecret, ...secrets.KEY.split('\n')]
  for (const text of shown) {
    for (const canary of canaries)
      if (text.toLowerCase().includes(canary.toLowerCase())) t.fail(`${canary} in ${text.slice(0, 300)}`)
    // A secret that was written in two halves does not leave its second half.
    for (const canary of [secrets.SECRET, secrets.COLOUR, webhookSecret]) {
      const half = canary.slice(Math.floor(canary.length / 2))
      if (text.includes(half)) t.fail(`the end of ${canary} in ${text.slice(0, 300)}`)
    }
  }
  t.match(shown.join('\n'), /\[redacted\]/)
})
