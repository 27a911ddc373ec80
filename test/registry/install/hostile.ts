import { createHash, generateKeyPairSync, sign } from 'node:crypto';
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { gzipSync } from 'node:zlib';

import { expect } from '@hapi/code';
import * as Lab from '@hapi/lab';

import { InstallFailure, type Registry, type RegistryOptions } from '../../../registry/src/index.ts';
import { type ArchiveEntry, archiveOf, packageArchive, tarOf } from '../../support/registry/archive.ts';
import { pluginCode, pluginPackage, refusal, tryRegistry } from '../../support/registry/packages.ts';
import { type NpmRegistry, startNpmRegistry } from '../../support/servers/npm-registry.ts';

export const lab = Lab.script();
const { after, afterEach, before, beforeEach, describe, it } = lab;

const limits = {
    archiveBytes: 2_000_000,
    unpackedBytes: 5_000_000,
    totalBytes: 6_000_000,
    entries: 200,
    packages: 4,
    idleMs: 3000,
    totalMs: 40_000
};

describe('createRegistry: install, when a package means harm or a network fails', { timeout: 90_000 }, () => {
    let npm: NpmRegistry;
    let registry: Registry;
    let dataDir: string;
    let remove: () => void;
    const more: Partial<RegistryOptions> = { limits };

    before(async () => {
        npm = await startNpmRegistry();
        await npm.publish({ name: 'left', version: '1.0.0' }, { 'index.js': `module.exports = 'left';\n` });
        await npm.publish(pluginPackage('good', '1.0.0', { dependencies: { left: '^1.0.0' } }), {
            'index.js': pluginCode('good')
        });
    });
    after(() => npm.stop());
    beforeEach(async () => {
        ({ registry, dataDir, remove } = await tryRegistry(npm.url, more));
    });
    afterEach(() => {
        npm.intercept = null;
        // Whatever happened: no folder of a version, nothing half made, nothing in the lock.
        expect(readdirSync(join(dataDir, 'plugins')).toSorted()).to.equal(['.staging', 'node_modules']);
        expect(readdirSync(join(dataDir, 'plugins/.staging'))).to.equal([]);
        expect(registry.lock.current()).to.equal([]);
        remove();
    });

    const good = { package: '@acme/portico-plugin-good' };
    const hostile = (
        more: readonly ArchiveEntry[],
        files: Readonly<Record<string, string>> = { 'index.js': pluginCode('x') }
    ): Promise<readonly [string, string]> =>
        refusal(registry, { tarball: packageArchive(pluginPackage('evil', '1.0.0'), files, more) });

    it('unpacks no archive that leads out of its folder, has links, or holds what a package cannot', async () => {
        const wrong: readonly (readonly [ArchiveEntry, string])[] = [
            [{ path: 'package/../../../evil.js', content: 'x' }, 'leads out of its folder'],
            [{ path: '/tmp/portico-evil.js', content: 'x' }, 'leads out of its folder'],
            [{ path: 'package/a/../../../x', content: 'x' }, 'leads out of its folder'],
            [{ path: 'package\\..\\..\\x', content: 'x' }, 'leads out of its folder'],
            [{ path: 'package/link', type: '2', link: '/etc' }, 'neither a file nor a folder'],
            [{ path: 'package/hard', type: '1', link: 'package/index.js' }, 'neither a file nor a folder'],
            [{ path: 'package/hard', type: '1', link: '/etc/passwd' }, 'neither a file nor a folder'],
            [{ path: 'package/pipe', type: '6' }, 'neither a file nor a folder'],
            [{ path: 'package/device', type: '3' }, 'neither a file nor a folder'],
            [{ path: 'package/package.json', content: '{}' }, 'one file twice'],
            [{ path: 'package/node_modules/x/index.js', content: 'x' }, 'packages of its own']
        ];
        for (const [entry, why] of wrong) {
            const [code, message] = await hostile([entry]);
            expect([entry.path, code]).to.equal([entry.path, 'ARCHIVE_REFUSED']);
            expect(message).to.contain(why);
        }
        expect(existsSync('/tmp/portico-evil.js')).to.be.false();
    });

    it('unpacks no bomb, whatever it is made of', async () => {
        const zeros = Buffer.alloc(8_000_000);
        expect((await hostile([{ path: 'package/zeros', content: zeros }]))[1]).to.contain(
            'unpacks to more than 5000000 bytes'
        );
        expect(
            (
                await hostile(
                    Array.from({ length: 300 }, (_, index) => ({ path: `package/${index}`, content: '' }))
                )
            )[1]
        ).to.contain('more than 200 entries');
        expect(
            (
                await refusal(registry, {
                    tarball: gzipSync(gzipSync(tarOf([{ path: 'package/package.json', content: '{}' }])))
                })
            )[1]
        ).to.contain('an archive within an archive');
        expect((await refusal(registry, { tarball: gzipSync(Buffer.alloc(8_000_000)) }))[0]).to.equal(
            'ARCHIVE_REFUSED'
        ); // nothing but the padding of an archive
        expect((await refusal(registry, { tarball: Buffer.alloc(3_000_000) }))[1]).to.equal(
            'The upload is larger than 2000000 bytes'
        );
        expect((await refusal(registry, { tarball: gzipSync('') }))[0]).to.equal('ARCHIVE_REFUSED');
        expect(
            (
                await refusal(registry, {
                    tarball: archiveOf([{ path: 'package/package.json', content: '{}' }]).subarray(0, 60)
                })
            )[0]
        ).to.equal('ARCHIVE_REFUSED');
        // A dependency is no way around.
        await npm.publish(
            { name: 'bomb', version: '1.0.0' },
            {},
            packageArchive({ name: 'bomb', version: '1.0.0' }, {}, [
                { path: 'package/zeros', content: zeros }
            ])
        );
        await npm.publish(
            { name: 'linked', version: '1.0.0' },
            {},
            packageArchive({ name: 'linked', version: '1.0.0' }, {}, [
                { path: 'package/link', type: '2', link: '/etc' }
            ])
        );
        for (const name of ['bomb', 'linked']) {
            expect(
                (
                    await refusal(registry, {
                        tarball: packageArchive(
                            pluginPackage('evil', '1.0.0', { dependencies: { [name]: '1.0.0' } }),
                            {}
                        )
                    })
                )[0]
            ).to.equal('ARCHIVE_REFUSED');
        }
        await Promise.all(['a1', 'a2', 'a3', 'a4'].map((name) => npm.publish({ name, version: '1.0.0' })));
        expect(
            (
                await refusal(registry, {
                    tarball: packageArchive(
                        pluginPackage('evil', '1.0.0', {
                            dependencies: { a1: '1', a2: '1', a3: '1', a4: '1' }
                        }),
                        {}
                    )
                })
            )[1]
        ).to.contain('at most 3 are allowed');
    });

    it('refuses what is not what the registry, or the admin, named', async () => {
        const tampered = { package: '@acme/portico-plugin-tampered' };
        await npm.publish(pluginPackage('tampered', '1.0.0'), { 'index.js': pluginCode('good') });
        writeFileSync(
            join(npm.storage, '@acme/portico-plugin-tampered/portico-plugin-tampered-1.0.0.tgz'),
            packageArchive(pluginPackage('tampered', '1.0.0'), { 'index.js': pluginCode('evil') })
        );
        expect((await refusal(registry, tampered))[0]).to.equal('INTEGRITY_MISMATCH');
        expect(
            (
                await refusal(registry, {
                    ...good,
                    integrity: `sha512-${createHash('sha512').update('x').digest('base64')}`
                })
            )[0]
        ).to.equal('INTEGRITY_MISMATCH');
        expect((await refusal(registry, { ...good, integrity: 'md4-x' }))[0]).to.equal('INTEGRITY_MISMATCH');
        // A dependency that was changed.
        npm.intercept = (request, response) =>
            request.url?.endsWith('/left-1.0.0.tgz') === true &&
            Boolean(response.end(packageArchive({ name: 'left', version: '1.0.0' }, { 'index.js': 'evil' })));
        expect((await refusal(registry, good))[0]).to.equal('INTEGRITY_MISMATCH');
        // An archive that holds another package than its address says.
        await npm.publish(
            pluginPackage('disguised', '1.0.0'),
            {},
            packageArchive(pluginPackage('good', '9.0.0'), { 'index.js': pluginCode('evil') })
        );
        expect((await refusal(registry, { package: '@acme/portico-plugin-disguised' }))[1]).to.equal(
            'The archive of @acme/portico-plugin-disguised 1.0.0 holds @acme/portico-plugin-good 9.0.0'
        );
        // What the registry says of a version is not believed: what counts lies in the archive.
        await npm.publish(
            pluginPackage('two-faced', '1.0.0'),
            {},
            packageArchive(
                { ...pluginPackage('two-faced', '1.0.0'), portico: { name: 'two-faced', sdk: '^9.0.0' } },
                { 'index.js': pluginCode('evil') }
            )
        );
        expect((await refusal(registry, { package: '@acme/portico-plugin-two-faced' }))[0]).to.equal(
            'SDK_RANGE'
        );
        // No integrity at all.
        npm.intercept = (request, _response, pass) => {
            const isListing =
                request.url?.includes('portico-plugin-good') === true && !request.url.endsWith('.tgz');
            if (isListing) {
                void pass((body) =>
                    edited(body, ({ dist }) => {
                        delete dist['integrity'];
                        delete dist['shasum'];
                    })
                );
            }
            return isListing;
        };
        expect((await refusal(registry, good))[1]).to.contain('no integrity');
    });

    it('demands the signature of a registry that publishes keys, for dependencies too', async () => {
        const { privateKey, publicKey } = generateKeyPairSync('ec', { namedCurve: 'prime256v1' });
        const key = publicKey.export({ type: 'spki', format: 'der' }).toString('base64');
        const signing = (which: (id: string) => string | null): void => {
            npm.intercept = (request, response, pass) => {
                if (request.url === '/-/npm/v1/keys') {
                    response.setHeader('content-type', 'application/json').end(
                        JSON.stringify({
                            keys: [
                                {
                                    keyid: 'SHA256:one',
                                    keytype: 'ecdsa-sha2-nistp256',
                                    scheme: 'ecdsa-sha2-nistp256',
                                    key,
                                    expires: null
                                }
                            ]
                        })
                    );
                    return true;
                }
                if (request.url?.endsWith('.tgz') === true || request.url?.startsWith('/-/') === true) {
                    return false;
                }
                void pass((body) =>
                    edited(body, (version) => {
                        const sig = which(`${version.name}@${version.version}`);
                        if (sig !== null) {
                            version.dist['signatures'] = [
                                {
                                    keyid: 'SHA256:one',
                                    sig:
                                        sig === ''
                                            ? sign(
                                                  'sha256',
                                                  Buffer.from(
                                                      `${version.name}@${version.version}:${String(version.dist['integrity'])}`
                                                  ),
                                                  privateKey
                                              ).toString('base64')
                                            : sig
                                }
                            ];
                        }
                    })
                );
                return true;
            };
        };
        signing((id) => (id.startsWith('left') ? null : ''));
        expect(await refusal(registry, good)).to.equal([
            'SIGNATURE_INVALID',
            'The registry publishes keys, but left 1.0.0 is not signed'
        ]);
        signing(() => null);
        expect((await refusal(registry, good))[0]).to.equal('SIGNATURE_INVALID');
        signing(() => sign('sha256', Buffer.from('something else'), privateKey).toString('base64'));
        expect((await refusal(registry, good))[0]).to.equal('SIGNATURE_INVALID');
        signing(() => '');
        const installed = await registry.install(good);
        expect([installed.signature, installed.dependencies.map((each) => each.signature)]).to.equal([
            'verified',
            ['verified']
        ]);
        await registry.remove(installed.folder);
        // Keys that cannot be had are not the same as none.
        npm.intercept = (request, response) =>
            request.url === '/-/npm/v1/keys' && Boolean(response.writeHead(503).end());
        expect((await refusal(registry, good))[0]).to.equal('REGISTRY_UNREACHABLE');
    });

    it('gives up on a registry that is not there, goes away in the middle, stops sending or talks nonsense', async () => {
        const wrong: Readonly<Record<string, NonNullable<NpmRegistry['intercept']>>> = {
            'is gone': (request) => Boolean(request.socket.destroy()),
            'goes away before the archive': (request) =>
                request.url?.endsWith('.tgz') === true && Boolean(request.socket.destroy()),
            'goes away within the archive': (request, response) =>
                request.url?.endsWith('.tgz') === true &&
                Boolean(
                    response
                        .writeHead(200, { 'content-length': 100_000 })
                        .write(packageArchive(pluginPackage('good', '1.0.0'), {}).subarray(0, 80), () =>
                            response.destroy()
                        )
                ),
            'stops sending': (request, response) =>
                request.url?.endsWith('.tgz') === true &&
                Boolean(
                    response
                        .writeHead(200, { 'content-length': 100_000 })
                        .write(packageArchive(pluginPackage('good', '1.0.0'), {}).subarray(0, 80))
                ),
            'goes away before a dependency': (request) =>
                request.url === '/left' && Boolean(request.socket.destroy()),
            'says 500': (_request, response) => Boolean(response.writeHead(500).end('{}')),
            'talks nonsense': (request, response) =>
                request.url !== '/-/npm/v1/keys' &&
                Boolean(response.writeHead(200, { 'content-type': 'text/html' }).end('<html>Sign in</html>')),
            'lists nothing': (request, response) =>
                request.url !== '/-/npm/v1/keys' &&
                Boolean(response.writeHead(200, { 'content-type': 'application/json' }).end('{}'))
        };
        for (const [name, intercept] of Object.entries(wrong)) {
            npm.intercept = intercept;
            const began = performance.now();
            const [code] = await refusal(registry, good);
            expect([name, code]).to.equal([
                name,
                name === 'lists nothing' ? 'PACKAGE_NOT_FOUND' : 'REGISTRY_UNREACHABLE'
            ]);
            expect(performance.now() - began).to.be.below(limits.totalMs);
        }
    });

    it('stops at once when it is told to, in every phase', async () => {
        for (const stopAt of ['resolve', 'fetch', 'verify', 'unpack', 'inspect']) {
            const control = new AbortController();
            const error = await registry
                .install(good, {
                    signal: control.signal,
                    onPhase: (phase) => phase === stopAt && control.abort()
                })
                .then(
                    () => null,
                    (reason: unknown) => reason
                );
            expect([stopAt, error instanceof InstallFailure && error.code]).to.equal([stopAt, 'CANCELLED']);
        }
        const slow = new AbortController();
        npm.intercept = (request) => request.url?.endsWith('.tgz') === true;
        const installing = registry.install(good, { signal: slow.signal }).then(
            () => 'installed',
            (error: InstallFailure) => error.code
        );
        while (!npm.asked.some((path) => path.endsWith('good-1.0.0.tgz'))) {
            await wait(20);
        }
        slow.abort();
        expect(await installing).to.equal('CANCELLED');
    });
});

type Version = { readonly name: string; readonly version: string; readonly dist: Record<string, unknown> };

function edited(listing: unknown, edit: (version: Version) => void): unknown {
    Object.values((listing as { versions?: Record<string, Version> }).versions ?? {}).forEach(edit);
    return listing;
}
