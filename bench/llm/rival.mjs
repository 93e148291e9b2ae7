// llama.cpp on a model, beside bench_llm:
//   node rival.mjs MODULES FILE THREADS TEXT
// reads a prompt of 512 tokens and makes 128, three times, and prints tokens a second of the best
// of each, the seconds to the first token, and MB: {"prompt", "decode", "first", "memory"}. With
// TEXT it prints the perplexity of its first 256 tokens instead, of which the second half is scored.
import {createRequire} from 'node:module';
import {readFileSync} from 'node:fs';
import {pathToFileURL} from 'node:url';

const [modules, file, threadsText, text] = process.argv.slice(2);
const threads = Number(threadsText);
const PROMPT = 512, DECODED = 128, WINDOW = 256;
const {getLlama, LlamaLogLevel} = await import(
  pathToFileURL(createRequire(`${modules}/`).resolve('node-llama-cpp')));
const now = () => performance.now() / 1e3;

const start = now();
const llama = await getLlama({gpu: false, build: 'never', maxThreads: threads,
  logLevel: LlamaLogLevel.error, progressLogs: false});
const model = await llama.loadModel({modelPath: file, gpuLayers: 0});
const context = await model.createContext({contextSize: PROMPT + DECODED, batchSize: PROMPT,
  threads, sequences: 1});
const sequence = context.getSequence();
const vocabulary = model.fileInfo.metadata.tokenizer.ggml.tokens.length;
const prompt = Array.from({length: PROMPT}, (_, i) => i * 7919 % vocabulary);
const best = {prompt: 0, decode: 0};
let first = 0;
for (let round = 0; round < (text ? 0 : 3); ++round) {
  await sequence.clearHistory();
  let begin = now();
  await sequence.evaluateWithoutGeneratingNewTokens(prompt);
  best.prompt = Math.max(best.prompt, PROMPT / (now() - begin));
  if (round === 0) first = now() - start;
  begin = now();
  let made = 0;
  for await (const token of sequence.evaluate([1], {temperature: 0, yieldEogTokens: true}))
    if (++made === DECODED - 1) break;
  best.decode = Math.max(best.decode, made / (now() - begin));
}

let perplexity = 0;
if (text) {
  await sequence.clearHistory();
  const tokens = model.tokenize(readFileSync(text, 'utf8')).slice(0, WINDOW);
  const half = tokens.length >> 1;
  const wanted = tokens.map((token, i) =>
    i < half || i === tokens.length - 1 ? token : [token, {generateNext: {probabilities: true}}]);
  const found = await sequence.controlledEvaluate(wanted);
  let sum = 0, scored = 0;
  for (let i = half; i + 1 < tokens.length; ++i, ++scored)
    sum -= Math.log(found[i].next.probabilities.get(tokens[i + 1]));
  perplexity = Math.exp(sum / scored);
}
console.log(JSON.stringify({...best, first, memory: process.resourceUsage().maxRSS / 1e3,
  perplexity}));
process.exit(0);
