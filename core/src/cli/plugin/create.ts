/** `portico plugin create`: a plugin to begin with. */
import type { Command } from '../command/command.ts';
import { misuse } from '../command/command-error.ts';

export const pluginCreate: Command = {
    name: 'plugin create',
    positionals: ['<name>'],
    summary: 'Begin a plugin: a package in TypeScript with a route, a setting and a test',
    details: [
        "The name is the plugin's own, as it stands in /api/plugins/<name>. Nothing is fetched: `npm install` in the new folder does that.",
        'The SDK comes from the registry, as the version of this panel; where that SDK was never published, as in a checkout of the repository, it is packed into vendor/ of the new folder.'
    ],
    options: {
        dir: {
            type: 'string',
            value: 'folder',
            description: "Where; else a folder of the plugin's name, here. It must not be there yet"
        },
        package: { type: 'string', value: 'name', description: 'The npm name; else portico-plugin-<name>' },
        sdk: {
            type: 'string',
            value: 'spec',
            description: 'Where npm takes @portico/sdk from, instead: a version, a tarball as file:../sdk.tgz'
        }
    },
    async run({ output, positionals, text }) {
        const [name = ''] = positionals;
        const { createPlugin } = await import('./develop/template.ts');
        const packageName = text('package') ?? `portico-plugin-${name}`;
        if (!/^(@[a-z0-9~-][a-z0-9._~-]*\/)?[a-z0-9~-][a-z0-9._~-]*$/.test(packageName)) {
            throw misuse(`--package: ${JSON.stringify(packageName)} is no name of an npm package`);
        }
        const folder = await createPlugin({
            name,
            package: packageName,
            folder: text('dir') ?? name,
            sdk: text('sdk') ?? null
        });
        output.say(`Next:\n  cd ${folder}\n  npm install\n  npm test\n  portico plugin dev`);
        output.result({ name, folder }, folder);
        return 0;
    }
};
