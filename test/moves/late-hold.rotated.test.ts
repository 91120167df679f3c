// Holds that take too long, also after the home and its copy have agreed: the move releases the requests, holds them again later, and gives
// up after some holds.
import t from 'tap'
import { createOwner, fill, move, remains, request, second, startMovePlatform } from './support/platform.ts'

/** The minimum, in which few machines can switch. */
const holdMilliseconds = 100

t.test(
  'A move that cannot switch in time ends with that reason, and leaves nothing',
  { timeout: 300_000 },
  async (t) => {
    const platform = await startMovePlatform(t, {
      control: { TENANTRY_MOVE_HOLD_MILLISECONDS: String(holdMilliseconds) },
    })
    await platform.startControlPlane()
    const ada = await createOwner(platform, 'ada')
    await fill(platform, ada)
    const { state, error } = await move(platform, ada, second)
    t.comment(`${String(state)}: ${String(error)}`)
    if (state !== 'succeeded') {
      t.equal(state, 'failed')
      t.match(error, /in the 100 ms for which a move may hold requests/)
      t.same(await remains(platform, ada, second), [])
    }
    t.equal((await request(platform, ada, 'POST', '/rest/v1/notes', { text: 'later' })).status, 201)
  },
)
