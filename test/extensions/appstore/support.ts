/** Apps of the tests with an engine: a small web server that keeps pages in a volume. */
import { appDocument, type Part } from './publisher.ts';
import type { AppstoreRig } from './rig.ts';

/** The repository of its image in the engine's registry. */
export const repository = '127.0.0.1:5000/apps/wiki';
/** What each start does first. */
export const startScript =
    'echo start >> /data/starts; test -f /data/index.html || echo first > /data/index.html';

/** Its compose text. */
export const webCompose = (tag: string, script = startScript, more = ''): string => `
services:
  web:
    image: ${repository}:${tag}
    command: [sh, -c, '${script}; exec busybox httpd -f -p 80 -h /data']
    stop_grace_period: 0s
    ports: ["\${APP_PORT}:80"]
    volumes: ["data:/data"]
    ${more}
volumes: { data: {} }
`;

/** Images that a rig's registry has: digests by tag. */
export async function pushImages(rig: AppstoreRig, tags: readonly string[]): Promise<Record<string, string>> {
    const digests: Record<string, string> = {};
    for (const tag of tags) {
        digests[tag] = await rig.pushImage(`${repository}:${tag}`, tag);
    }
    return digests;
}

/** Its document. */
export const webApp = (digests: Readonly<Record<string, string>>, version: string, more: Part = {}): Part =>
    appDocument({
        version,
        compose: webCompose('1'),
        images: Object.fromEntries(
            Object.entries(digests).map(([tag, digest]) => [`${repository}:${tag}`, digest])
        ),
        ...more
    });
