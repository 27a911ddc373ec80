import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { InstallFailure, type Registry } from '../../../registry/src/index.ts';
import { pluginPackage, tryRegistry } from '../../support/registry/packages.ts';
import { type NpmRegistry, startNpmRegistry } from '../../support/servers/npm-registry.ts';

export const lab = Lab.script();
const { after, before, describe, it } = lab;

describe('createRegistry: available', { timeout: 60_000 }, () => {
    let npm: NpmRegistry;
    let registry: Registry;
    let remove: () => void;

    before(async () => {
        npm = await startNpmRegistry();
        await npm.publish(pluginPackage('hello', '1.0.0'));
        await npm.publish(pluginPackage('hello', '1.4.0'));
        await npm.publish(pluginPackage('hello', '2.0.0', { portico: { name: 'hello', sdk: '^2.0.0' } }));
        await npm.publish(pluginPackage('hello', '3.0.0-beta.1'));
        await npm.publish(
            pluginPackage('future', '1.0.0', { portico: { name: 'future', sdk: '>=5', novelty: true } })
        );
        await npm.publish(pluginPackage('withdrawn', '1.0.0'));
        await npm.publish(pluginPackage('withdrawn', '1.1.0', { deprecated: 'It loses data' }));
        await npm.publish({ name: 'left', version: '1.0.0', keywords: ['padding'] });
        ({ registry, remove } = await tryRegistry(npm.url, { limits: { idleMs: 3000 } }));
    });
    after(async () => {
        remove();
        await npm.stop();
    });

    it('names the newest version that works, and why not a newer one', async () => {
        const { offers, searchable, failures } = await registry.available([
            { package: '@acme/portico-plugin-hello', version: '1.0.0' },
            { package: '@acme/gone', version: '1.0.0' }
        ]);
        expect(searchable).to.be.true();
        expect(failures).to.equal([{ package: '@acme/gone', message: 'The registry has no @acme/gone' }]);
        expect(offers).to.equal([
            {
                package: '@acme/portico-plugin-future',
                name: 'future',
                title: 'Says future',
                version: null,
                latest: '1.0.0',
                conflict: 'future 1.0.0 works with @portico/sdk >=5, but this panel has 1.0.0',
                installed: null,
                upgrade: false
            },
            {
                package: '@acme/portico-plugin-hello',
                name: 'hello',
                title: 'Says hello',
                version: '1.4.0',
                latest: '2.0.0',
                conflict: 'hello 2.0.0 works with @portico/sdk ^2.0.0, but this panel has 1.0.0',
                installed: '1.0.0',
                upgrade: true
            },
            {
                package: '@acme/portico-plugin-withdrawn',
                name: 'withdrawn',
                title: 'Says withdrawn',
                version: '1.0.0',
                latest: '1.1.0',
                conflict: 'withdrawn 1.1.0 was withdrawn by its author',
                installed: null,
                upgrade: false
            }
        ]);
    });

    it('answers a search by words', async () => {
        const { offers } = await registry.available([], { search: 'withdrawn' });
        expect(offers.map((each) => each.package)).to.equal(['@acme/portico-plugin-withdrawn']);
    });

    it('says that a registry answers no search, and still asks for what is installed', async () => {
        npm.intercept = (request, response) =>
            request.url?.startsWith('/-/v1/search') === true && Boolean(response.writeHead(404).end());
        const { offers, searchable } = await registry.available([
            { package: '@acme/portico-plugin-hello', version: '1.4.0' }
        ]);
        npm.intercept = null;
        expect([searchable, offers.map(({ name, upgrade }) => [name, upgrade])]).to.equal([
            false,
            [['hello', false]]
        ]);
    });

    it('names each package that could not be asked for when the registry is gone, and stops when it is told to', async () => {
        npm.intercept = (request) => Boolean(request.socket.destroy());
        const { offers, searchable, failures } = await registry.available([
            { package: '@acme/portico-plugin-hello', version: '1.0.0' }
        ]);
        npm.intercept = null;
        expect([offers, searchable, failures.map((each) => each.package)]).to.equal([
            [],
            false,
            ['@acme/portico-plugin-hello']
        ]);
        const error = await registry.available([], { signal: AbortSignal.abort() }).then(
            () => null,
            (reason: unknown) => reason
        );
        expect(error instanceof InstallFailure && error.code).to.equal('CANCELLED');
    });
});
