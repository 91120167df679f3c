// The API shows a month's figures in larger units, rounded down, so that they never exceed the counts.
import t from 'tap'
import { noAmounts } from '#control-plane/usage/hour-bucket.ts'
import { monthResources } from '#control-plane/usage/month-resources.ts'

const stored = {
  tenant_id: 't_00000000000000000000',
  file_bytes: 5,
  file_count: 1,
  document_bytes: 6,
  function_invocations: 4,
}
const of = (amounts: Partial<ReturnType<typeof noAmounts>>, runtime?: typeof stored, elapsedMilliseconds = 3_600_000) =>
  monthResources({
    usage: {
      totals: { ...noAmounts(), ...amounts },
      cells: new Map(),
      closedAt: undefined,
      isThere: true,
      corrections: [],
    },
    plan: undefined,
    stored: runtime,
    elapsedMilliseconds,
  })

t.test('byte-hours, milliseconds and mebibyte-seconds are integers, rounded down', (t) => {
  const { storage, functions } = of({
    fileByteSeconds: 7199n,
    documentByteSeconds: 3600n,
    functionCpuMicroseconds: 1999n,
    functionMemoryKibMilliseconds: 2_047_999n,
  })
  t.match(storage, { files_byte_hours: 1, documents_byte_hours: 1, files_bytes: null, files_limit: null })
  t.match(functions, { cpu_ms: 1, memory_mib_seconds: 1 })
  t.end()
})

t.test('the number of invocations is the greater of the ledger’s and the runtime’s', (t) => {
  t.equal(of({ functionInvocations: 3n }, stored).functions.invocations, 4)
  t.equal(of({ functionInvocations: 9n }, stored).functions.invocations, 9, 'deleted records still count')
  t.equal(of({ functionInvocations: 9n }).functions.invocations, 9)
  t.end()
})

t.test('the average of connections is over the elapsed time, and 0 when no time has passed', (t) => {
  t.equal(of({ connectionMilliseconds: 1_800_000n }).realtime_connections.average, 0.5)
  t.equal(of({ connectionMilliseconds: 1_800_000n }, undefined, 0).realtime_connections.average, 0)
  t.end()
})
