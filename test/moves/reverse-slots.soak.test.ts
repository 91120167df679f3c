// Moves whose server has no slot for the stream that leads back.
import t from 'tap'
import { createOwner, fill, first, move, remains, second, startMovePlatform } from './support/platform.ts'

const noMove = { status: 409, body: { code: 'NO_MOVE_TO_REVERT' } }

t.test('A move without a slot for its reverse is completed, and states the reason', { timeout: 300_000 }, async (t) => {
  for (const [postgres, reason] of [
    // The move itself needs one.
    [{ max_replication_slots: '1' }, /^No replication slot could be created: /],
    [{ max_slot_wal_keep_size: '-1' }, /^The setting max_slot_wal_keep_size .* has no limit\.$/],
  ] as const) {
    const platform = await startMovePlatform(t, { control: { TENANTRY_MOVE_REVERSE_SECONDS: '3600' }, postgres })
    await platform.startControlPlane()
    const ada = await createOwner(platform, 'ada')
    await fill(platform, ada)
    t.match(await move(platform, ada, second), {
      state: 'succeeded',
      move: { revertible_until: null, not_revertible_reason: reason },
    })
    t.same(await remains(platform, ada, first), [])
    t.match(await platform.call('POST', `/v1/tenants/${ada.id}/move/revert`), noMove)
  }
})
