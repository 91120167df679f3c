// The engine of a run of tests or benchmarks, with the project's images. TENANTRY_DOCKER_HOST passes it to the run's
// processes.
import { buildImages } from '../images/build.ts'
import { ensureEngine, type Engine } from './engine.ts'

/** Opens the engine. @throws Error with a remedy if there is none */
export async function openEngineWithImages(report: (line: string) => void): Promise<Engine> {
  const engine = await ensureEngine()
  process.env['TENANTRY_DOCKER_HOST'] = engine.host
  for (const { name, built } of await buildImages(engine.docker)) if (built) report(`built the image ${name}`)
  return engine
}
