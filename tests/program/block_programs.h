#pragma once

#include <string>

// Kernels by blocks of threads, for tests.

namespace hone {

// Softmax of rows of 1,000: a block of 128 threads has a row, eight numbers of it a thread.
inline const std::string kBlockSoftmax = R"(tiles @softmax(@x: f32[3, 1000]) -> (@y: f32[3, 1000]) {
  block @part: f32[4]
  block @total: f32[4]
  own @row: f32[8]
  own @one: f32[]
  blocks i in 3 {
    threads t in 128 {
      %low = number -inf: f32
      %most = unroll k in 8 carry (%acc = %low by max) {
        %x = load @x[i, 128*k + t] if 0 <= 128*k + t < 1000 else %low
        store @row[k] = %x
        %next = max %acc, %x
        yield %next
      }
      store @one[] = %most
    }
    combine @one[] by max
    threads u in 128 {
      %own = load @one[]
      store @part[floordiv(u, 32)] = %own if 0 <= mod(u, 32) < 1
    }
    barrier
    threads v in 128 {
      %least = number -inf: f32
      %peak = unroll w in 4 carry (%acc2 = %least by max) {
        %p = load @part[w]
        %next2 = max %acc2, %p
        yield %next2
      }
      %zero = number 0.0: f32
      %sum = unroll k2 in 8 carry (%acc3 = %zero by add) {
        %n = load @row[k2]
        %shifted = sub %n, %peak
        %e = exp %shifted
        store @row[k2] = %e
        %next3 = add %acc3, %e
        yield %next3
      }
      store @one[] = %sum
    }
    combine @one[] by add
    threads u2 in 128 {
      %own2 = load @one[]
      store @total[floordiv(u2, 32)] = %own2 if 0 <= mod(u2, 32) < 1
    }
    barrier
    threads v2 in 128 {
      %zero2 = number 0.0: f32
      %all = unroll w2 in 4 carry (%acc4 = %zero2 by add) {
        %q = load @total[w2]
        %next4 = add %acc4, %q
        yield %next4
      }
      unroll k3 in 8 {
        %m = load @row[k3]
        %y = div %m, %all
        store @y[i, 128*k3 + v2] = %y if 0 <= 128*k3 + v2 < 1000
      }
    }
  }
}
)";

// A product of 50 x 40 and 40 x 70 by tiles of 16 x 16 in the memory of a block.
inline const std::string kBlockProduct =
    R"(tiles @product(@a: i32[50, 40], @b: i32[40, 70]) -> (@c: i32[50, 70]) {
  block @ta: i32[16, 17]
  block @tb: i32[16, 16]
  own @acc: i32[]
  blocks i in 4 {
    blocks j in 5 {
      threads t in 256 {
        %zero = number 0: i32
        store @acc[] = %zero
      }
      for s in 3 {
        threads u in 256 {
          %none = number 0: i32
          %a = load @a[16*i + floordiv(u, 16), 16*s + mod(u, 16)] if
              0 <= 16*i + floordiv(u, 16) < 50 and
              0 <= 16*s + mod(u, 16) < 40 else %none
          %b = load @b[16*s + floordiv(u, 16), 16*j + mod(u, 16)] if
              0 <= 16*s + floordiv(u, 16) < 40 and
              0 <= 16*j + mod(u, 16) < 70 else %none
          store @ta[floordiv(u, 16), mod(u, 16)] = %a
          store @tb[floordiv(u, 16), mod(u, 16)] = %b
        }
        barrier
        threads v in 256 {
          %old = load @acc[]
          %sum = for k in 16 carry (%part = %old by add) {
            %l = load @ta[floordiv(v, 16), k]
            %r = load @tb[k, mod(v, 16)]
            %both = mul %l, %r
            %next = add %part, %both
            yield %next
          }
          store @acc[] = %sum
        }
        barrier
      }
      threads w in 256 {
        %result = load @acc[]
        store @c[16*i + floordiv(w, 16), 16*j + mod(w, 16)] = %result
            if 0 <= 16*i + floordiv(w, 16) < 50 and 0 <= 16*j + mod(w, 16) < 70
      }
    }
  }
}
)";

// The text with the n-th place of `from` changed to `to`.
inline std::string changed(std::string text, const std::string& from, const std::string& to,
                           int n = 0) {
  size_t at = text.find(from);
  for (; n > 0 && at != std::string::npos; --n) at = text.find(from, at + 1);
  return at == std::string::npos ? "" : text.replace(at, from.size(), to);
}

}  // namespace hone
