// The entry of `npm start`: the installation in this process, or with --respawn in a child that is started again when it is
// killed. It imports only what it runs, because the process that waits for the child should be small.
const option = '--respawn'
const args = process.argv.slice(2)

if (args.includes(option)) {
  const { runRespawned } = await import('./respawn-installation.ts')
  process.exit(await runRespawned(args.filter((arg) => arg !== option)))
} else await import('./main.ts')
