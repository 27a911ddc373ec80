/** Commands and scripts by the clock. */
import { createCronjob } from './plugin.ts';

export default createCronjob();
