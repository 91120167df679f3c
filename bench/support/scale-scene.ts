// A platform of many tenants whose homes do not exist: a control plane and a gateway as processes, Postgres, and a program
// that stands for the runtime.
import { readFile } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import { internalPaths } from '@tenantry/contract'
import pg from 'pg'
import { createSeal } from '#control-plane/platform/seal.ts'
import { newSecrets } from '#control-plane/tenants/index.ts'
import { sealedSecrets } from '#control-plane/tenants/store-secrets.ts'
import type { Report } from '#bench/figures.ts'
import { startPlatform, type Platform, type Service } from '#test/support/platform.ts'

export interface ScaleScene {
  platform: Platform
  control: pg.Client
  controlPlane: Service
  close(): Promise<void>
}

const databaseCapacity = 1_000
const batch = 2_000

/** Starts the platform without tenants. */
export async function openScaleScene(): Promise<ScaleScene> {
  const platform = await startPlatform({
    runtimeProgram: 'bench/support/simulated-runtime.ts',
    postgres: { fsync: 'on', max_wal_size: '4GB' },
  })
  const controlPlane = await platform.startControlPlane()
  const control = new pg.Client(platform.postgres.url('control'))
  await control.connect()
  return {
    platform,
    control,
    controlPlane,
    async close() {
      await control.end()
      await platform.stop()
    },
  }
}

/**
 * Adds tenants that are like an existing one, with secrets of their own and a reading of this hour. No part is notified.
 * @param model ID of a tenant that is ready
 */
export async function addTenants(
  { platform, control }: ScaleScene,
  model: string,
  count: number,
  report: Report,
): Promise<void> {
  await control.query(
    `insert into shared_databases (id, region_id, name, capacity)
     select 'local-' || n, 'local', 'tenantry_homes_' || n, ${databaseCapacity} from generate_series(2, $1::int) n`,
    [1 + Math.ceil(count / databaseCapacity)],
  )
  const { rows } = await control.query<{ id: string }>(
    `insert into tenants select (jsonb_populate_record(t, jsonb_build_object(
       'id', 't_' || substr(md5(n::text), 1, 20), 'name', 'customer-' || n,
       'shared_database_id', 'local-' || (2 + n / ${databaseCapacity})))).*
     from tenants t, generate_series(0, $1::int - 1) n where t.id = $2 returning id`,
    [count, model],
  )
  await control.query(
    `insert into home_readings (tenant_id, books, read_at, document_bytes, file_bytes, document_byte_seconds, file_byte_seconds)
     select id, gen_random_uuid(), now() + random() * interval '1 minute', 1, 1, 1, 1 from tenants where name like 'customer-%'`,
  )
  const seal = createSeal(Buffer.from(await readFile(platform.masterKeyFile, 'utf8'), 'base64'))
  for (let at = 0; at < rows.length; at += batch) {
    const secrets = rows.slice(at, at + batch).flatMap(({ id }) => sealedSecrets(seal, id, newSecrets()))
    await control.query(
      `insert into tenant_secrets (id, tenant_id, kind, sealed)
       select * from unnest($1::uuid[], $2::text[], $3::text[], $4::bytea[])`,
      [
        secrets.map(({ id }) => id),
        secrets.map(({ tenantId }) => tenantId),
        secrets.map(({ kind }) => kind),
        secrets.map(({ sealed }) => Buffer.from(sealed)),
      ],
    )
  }
  await control.query('vacuum analyze')
  // Its writes to the disk would slow down what is measured.
  await control.query('checkpoint')
  report(`${count} tenants`)
}

/** Waits until the gateway and the runtime have the whole set of this start. @returns the milliseconds that each took */
export async function untilSynced(
  { platform }: ScaleScene,
  since: number,
): Promise<{ gateway: number; runtime: number }> {
  const { gateway, runtime } = platform.internalUrls
  const [gatewayAfter, runtimeAfter] = await Promise.all([
    untilLive(gateway, 'routes_synced', since),
    untilLive(runtime, 'synced', since),
  ])
  return { gateway: gatewayAfter, runtime: runtimeAfter }
}

async function untilLive(url: string, member: string, since: number): Promise<number> {
  for (;;) {
    const live = await fetch(`${url}${internalPaths.live}`).then(
      async (response) => (await response.json()) as Record<string, unknown>,
      () => undefined,
    )
    if (live?.[member] === true) return performance.now() - since
    await sleep(20)
  }
}
