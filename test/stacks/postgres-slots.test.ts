// Who takes the places of a dedicated Postgres: those that never log in leave enough for everybody else.
import t from 'tap'
import { homeConnectionLimits } from '#control-plane/homes/home-sql.ts'
import { stackFor } from '#control-plane/stacks/stack-for.ts'
import { defaultLimits } from '#gateway/limits.ts'

const size = { memoryBytes: 2 ** 29, cpuMillis: 500, pids: 256 }
const { services } = stackFor(
  {
    id: 't_0123456789abcdef0123',
    isolation: 'database-per-tenant',
    running: true,
    hasHome: true,
    resources: { postgres: size, runtime: size },
    restarts: 0,
    images: { postgres: 'sha256:aa', runtime: 'sha256:bb' },
    subnet: '10.1.1.0/28',
  },
  { gatewayContainer: 'the-gateway', internalToken: 'x'.repeat(32) },
)
const settings = new Map(
  services
    .find(({ name }) => name === 'postgres')
    ?.command.map((text) => {
      const [name = '', value = ''] = text.split('=')
      return [name, value]
    }),
)

/** PostgreSQL's own reserve for superusers, and what a backup reads over (control-plane/src/backups/reader-login.ts). */
const superuserSlots = 3
const readerSlots = 8

t.test('a login under way takes a place from its first byte, so there may be no more than are left', async (t) => {
  const runtime = Number(services.find(({ name }) => name === 'runtime')?.environment['TENANTRY_MAX_CONNECTIONS'])
  const { admin, ddl } = homeConnectionLimits
  const left = Number(settings.get('max_connections')) - runtime - admin - ddl - readerSlots - superuserSlots
  t.ok(defaultLimits.sqlLoginsPerTenant <= left, `${left} are left`)
  t.ok(defaultLimits.sqlLoginsPerTenantAndAddress >= admin, 'one client may open all its sessions at once')
  t.ok(defaultLimits.sqlSessionsPerTenant >= admin)
})

t.test('Postgres gives up on a login when the door does', async (t) => {
  t.equal(settings.get('authentication_timeout'), `${defaultLimits.loginTimeout / 1000}s`)
})
