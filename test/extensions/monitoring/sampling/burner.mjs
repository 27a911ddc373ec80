// Keeps one processor busy until it is ended, two minutes at most.
import process from 'node:process';
import { setImmediate } from 'node:timers';

process.send('busy');
const until = Date.now() + 120_000;
const burn = () => {
    for (let turns = 0; turns < 5_000_000; turns += 1);
    if (Date.now() < until && process.connected) {
        setImmediate(burn);
    } else {
        process.exit();
    }
};
burn();
