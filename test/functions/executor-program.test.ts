// Executors run the program that was built for them, and the source as soon as any of it differs.
import { appendFile, cp, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import t from 'tap'
import { executorProgram } from '#tenant-runtime/functions/executor/executor-program.ts'

const part = join(import.meta.dirname, '../../tenant-runtime')
const child = 'src/functions/executor/child.ts'

t.test('the program that executors run', async (t) => {
  const copy = await mkdtemp(join(tmpdir(), 'tenantry-program-'))
  t.teardown(() => rm(copy, { recursive: true, force: true }))
  for (const folder of ['src/functions', 'built']) await cp(join(part, folder), join(copy, folder), { recursive: true })
  const built = join(copy, 'built/executor.mjs')
  t.same(executorProgram(join(copy, child)), { file: built, readable: [built] }, 'as it was built')
  await appendFile(join(copy, 'src/functions/executor/wasi.ts'), '\n')
  t.match(
    executorProgram(join(copy, child)),
    { file: join(copy, child), readable: [join(copy, 'src/functions/*'), join(copy, 'package.json')] },
    'a file that it is made of has changed',
  )
  await rm(join(copy, 'built'), { recursive: true })
  t.match(executorProgram(join(copy, child)), { file: join(copy, child) }, 'nothing was built')
  t.equal(
    executorProgram(join(copy, 'app/child.js')).file,
    join(copy, 'app/child.js'),
    'what is no source runs as it is',
  )
})
