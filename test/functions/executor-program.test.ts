// An executor runs the built program, or the source once a file of the source differs.
import { appendFile, cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { executorProgram } from '#tenant-runtime/functions/executor/executor-program.ts'

const part = join(import.meta.dirname, '../../tenant-runtime')
const child = 'src/functions/executor/child.ts'

t.test('executorProgram selects the program that executors run', async (t) => {
  const copy = await mkdtemp(join(tmpdir(), 'tenantry-program-'))
  t.teardown(() => rm(copy, { recursive: true, force: true }))
  for (const folder of ['src/functions', 'built']) await cp(join(part, folder), join(copy, folder), { recursive: true })
  const built = join(copy, 'built/executor.mjs')
  t.same(executorProgram(join(copy, child)), { file: built, readable: [built] }, 'the built program')
  await appendFile(join(copy, 'src/functions/executor/wasi.ts'), '\n')
  t.match(
    executorProgram(join(copy, child)),
    { file: join(copy, child), readable: [join(copy, 'src/functions/*'), join(copy, 'package.json')] },
    'a source file has changed',
  )
  await rm(join(copy, 'built'), { recursive: true })
  t.match(executorProgram(join(copy, child)), { file: join(copy, child) }, 'nothing was built')
  t.equal(
    executorProgram(join(copy, 'app/child.js')).file,
    join(copy, 'app/child.js'),
    'a file that is not TypeScript runs as it is',
  )
})
