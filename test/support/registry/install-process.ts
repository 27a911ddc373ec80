/** Installs and activates one plugin in a process of its own, and prints each phase, so that a test can kill it at any moment. One that is to be killed never ends by itself. */
import { createRegistry } from '../../../registry/src/index.ts';

const [dataDir = '', registryUrl = '', version = '1.0.0', killedAt = ''] = process.argv.slice(2);
if (killedAt !== '') {
    setInterval(() => undefined, 1_000); // the signal may come after the last step: until then it does not end
}
const say = (phase: string): void => void process.stdout.write(`${phase}\n`);
const registry = await createRegistry({
    dataDir,
    registryUrl,
    hmacKey: new Uint8Array(32).fill(7),
    reserved: new Set(),
    host: { sdk: '1.0.0', node: process.versions.node },
    log: { info: () => undefined, warn: () => undefined }
});
const installed = await registry.install(
    { package: '@acme/portico-plugin-killed', version },
    { onPhase: say }
);
say('activate');
await registry.lock.activate(installed);
say('activated');
