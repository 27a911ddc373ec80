/** A git server as a process of its own, so that what it costs is not counted with the panel. Says its port, then each time that it is asked. */
import { GitServer } from './git-server.ts';

const server = new GitServer(process.argv[2] ?? '');
await server.start();
server.create('polled', { 'index.html': 'polled' });
server.intercept = ({ url = '' }) => {
    if (url.includes('/git-upload-pack')) {
        process.stdout.write('asked\n');
    }
    return false;
};
process.stdout.write(`${server.port}\n`);
