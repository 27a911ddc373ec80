/** Signed statements of how releases were made: in-toto Statement v1 with SLSA provenance v1, in an envelope of DSSE. */
import {
    createHash,
    createPrivateKey,
    createPublicKey,
    generateKeyPairSync,
    type KeyObject,
    sign
} from 'node:crypto';

import { Mutex } from '@portico/sdk';

import type { Project } from '../deployments/store.ts';
import { type DeploymentRow, KeyEntity } from '../entities.ts';
import type { Ctx } from '../settings.ts';
import type { Built } from './build.ts';

/** An envelope of DSSE. */
export interface Envelope {
    readonly payloadType: string;
    /** Base64. */
    readonly payload: string;
    readonly signatures: readonly { readonly keyid: string; readonly sig: string }[];
}

const payloadType = 'application/vnd.in-toto+json';
const keyName = 'provenance';

/** Signs statements with a key of the plugin's own, which is made at its first use. */
export class Provenance {
    readonly #ctx: Ctx;
    readonly #mutex = new Mutex();

    constructor(ctx: Ctx) {
        this.#ctx = ctx;
    }

    /** The key that signatures are checked with. */
    async publicKey(): Promise<{ readonly keyid: string; readonly publicKey: string }> {
        const key = createPublicKey(await this.#key());
        return { keyid: idOf(key), publicKey: key.export({ type: 'spki', format: 'pem' }).toString() };
    }

    /** The signed statement of how a release was made. */
    async attest(
        project: Project,
        deployment: DeploymentRow,
        commit: string,
        built: Built
    ): Promise<Envelope> {
        const key = await this.#key();
        const payload = Buffer.from(JSON.stringify(statement(project, deployment, commit, built)));
        // PAE of DSSE v1: what is signed names its own type and lengths.
        const signed = Buffer.concat([
            Buffer.from(`DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `),
            payload
        ]);
        return {
            payloadType,
            payload: payload.toString('base64'),
            signatures: [
                { keyid: idOf(createPublicKey(key)), sig: sign(null, signed, key).toString('base64') }
            ]
        };
    }

    async #key(): Promise<KeyObject> {
        return this.#mutex.run(async () => {
            const found = await this.#ctx.db.read((em) => em.findOne(KeyEntity, { name: keyName }));
            if (found !== null) {
                return createPrivateKey(await this.#ctx.secrets.open(found.sealed));
            }
            const { privateKey } = generateKeyPairSync('ed25519');
            const pem = privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
            const sealed = await this.#ctx.secrets.seal(pem);
            await this.#ctx.db.write(async (em) => void em.create(KeyEntity, { name: keyName, sealed }));
            return privateKey;
        });
    }
}

/** The SHA-256 of a public key. */
function idOf(key: KeyObject): string {
    return createHash('sha256')
        .update(key.export({ type: 'spki', format: 'der' }))
        .digest('hex');
}

function statement(
    { name, config }: Project,
    { id, number, ref, startedAt }: DeploymentRow,
    commit: string,
    { artifact, plan }: Built
): object {
    const { url, path, submodules, lfs } = config.source;
    return {
        _type: 'https://in-toto.io/Statement/v1',
        subject: [
            { name: `${name}-${number}.tar`, digest: { sha256: artifact.sha256 } },
            // The id of an image is the SHA-256 of its configuration, which names its layers.
            ...Object.entries(plan.digests ?? {}).map(([service, id]) => ({
                name: `${name}-${number}-${service}`,
                digest: { sha256: id.replace(/^sha256:/, '') }
            }))
        ],
        predicateType: 'https://slsa.dev/provenance/v1',
        predicate: {
            buildDefinition: {
                buildType: 'urn:portico:deploy:build:v1',
                externalParameters: { source: { url, ref, path, submodules, lfs }, build: config.build },
                internalParameters: {},
                resolvedDependencies: [{ uri: `git+${url}`, digest: { gitCommit: commit } }]
            },
            runDetails: {
                builder: { id: 'urn:portico:deploy' },
                metadata: {
                    invocationId: String(id),
                    startedOn: new Date(startedAt ?? Date.now()).toISOString(),
                    finishedOn: new Date().toISOString()
                }
            }
        }
    };
}
